"""pybullet_data's Panda and other objects, made light enough to draw and step quickly.

Much of the rendering cost is the robot's mesh, so every link is drawn with its own collision
mesh, simplified to about a hundred faces (the stock visual meshes have 14,000 a link). Fingers
collide as boxes, which Bullet solves faster and more steadily than hulls, and the massless fixed
links are folded into link 7.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

FACES = 120  # a link
LINK_COLOURS = {"panda_leftfinger": "0.25 0.26 0.28 1", "panda_rightfinger": "0.25 0.26 0.28 1"}
LINK_COLOUR = "0.93 0.94 0.95 1"
HAND_MOUNT = ("0 0 -0.785398163397", "0 0 0.107")  # rpy [rad], xyz [m] of the hand on link 7
FINGER_MOUNT = "0 0 0.1654"  # 0.107 to the hand, 0.0584 on to the fingers [m]
# A finger is a stem and a pad: size and centre in the finger's frame [m], y pointing outwards.
FINGER_BOXES = (("0.019 0.012 0.022", 0.006, 0.0425), ("0.021 0.014 0.030", 0.013, 0.016))


def panda_urdf() -> Path:
    """The light Panda's URDF, generated into the user's cache on first use.

    Raises FileNotFoundError if pybullet_data lacks its Panda.
    """
    import pybullet_data

    source = Path(pybullet_data.getDataPath()) / "franka_panda"
    key = hashlib.sha256((source / "panda.urdf").read_bytes() + Path(__file__).read_bytes())
    folder = _cache() / f"panda-{key.hexdigest()[:12]}"
    if not folder.exists():
        _put_in_place(folder, lambda draft: _make_panda(source, draft))
    return folder / "panda.urdf"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fetchlab"


def object_meshes(name: str) -> tuple[Path, Path]:
    """pybullet_data's object of this name as it collides, and a light one to draw.

    Raises FileNotFoundError if there is none.
    """
    import pybullet_data

    source = Path(pybullet_data.getDataPath()) / "objects" / f"{name}_col.obj"
    key = hashlib.sha256(source.read_bytes() + Path(__file__).read_bytes())
    folder = _cache() / f"{name}-{key.hexdigest()[:12]}"
    if not folder.exists():
        _put_in_place(folder, lambda draft: _simplify(source, draft / source.name))
    return source, folder / source.name


def _make_panda(source: Path, draft: Path) -> None:
    for file in sorted((source / "meshes" / "collision").glob("*.obj")):
        _simplify(file, draft / "meshes" / "collision" / file.name)
    robot = ElementTree.parse(source / "panda.urdf").getroot()
    _lighten(robot)
    ElementTree.ElementTree(robot).write(draft / "panda.urdf")


def _put_in_place(folder: Path, make: Callable[[Path], None]) -> None:
    """Make a folder whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        draft = Path(temporary) / "draft"
        make(draft)
        try:
            draft.rename(folder)
        except OSError:  # another process was first; the content is the same
            if not folder.exists():
                raise


def _simplify(source: Path, destination: Path) -> None:
    import trimesh

    mesh = trimesh.load_mesh(source)
    mesh.merge_vertices(merge_norm=True, merge_tex=True)
    if len(mesh.faces) > FACES:
        mesh = mesh.simplify_quadric_decimation(face_count=FACES)
    destination.parent.mkdir(parents=True, exist_ok=True)
    mesh.export(destination, include_normals=False)


def _lighten(robot: ElementTree.Element) -> None:
    _fold_hand_into_link7(robot)
    for link in robot.iter("link"):
        name = link.get("name", "")
        for mesh in link.iter("mesh"):
            file = mesh.get("filename", "").removeprefix("package://")
            mesh.set("filename", file.replace("meshes/visual", "meshes/collision"))
        for visual in link.findall("visual"):
            _paint(visual, LINK_COLOURS.get(name, LINK_COLOUR))
        if name.endswith("finger"):
            _box_collision(link, outwards=1 if name == "panda_leftfinger" else -1)


def _fold_hand_into_link7(robot: ElementTree.Element) -> None:
    links = {link.get("name"): link for link in robot.findall("link")}
    for part in [*links["panda_hand"].findall("visual"), *links["panda_hand"].findall("collision")]:
        part.insert(0, ElementTree.Element("origin", rpy=HAND_MOUNT[0], xyz=HAND_MOUNT[1]))
        links["panda_link7"].append(part)
    inertial = links["panda_link7"].find("inertial")
    assert inertial is not None
    for tag, key, value in (("mass", "value", "1.01"), ("origin", "xyz", "0 0 0.13")):
        element = inertial.find(tag)
        assert element is not None
        element.set(key, value)
    for name in ("panda_link8", "panda_hand", "panda_grasptarget"):
        robot.remove(links[name])
    for joint in robot.findall("joint"):
        parent, origin = joint.find("parent"), joint.find("origin")
        assert parent is not None and origin is not None
        if joint.get("type") == "fixed":
            robot.remove(joint)
        elif parent.get("link") == "panda_hand":
            parent.set("link", "panda_link7")
            origin.set("rpy", HAND_MOUNT[0])
            origin.set("xyz", FINGER_MOUNT)


def _paint(visual: ElementTree.Element, rgba: str) -> None:
    for material in visual.findall("material"):
        visual.remove(material)
    material = ElementTree.SubElement(visual, "material", name=f"paint {rgba}")
    ElementTree.SubElement(material, "color", rgba=rgba)


def _box_collision(link: ElementTree.Element, outwards: int) -> None:
    for collision in link.findall("collision"):
        link.remove(collision)
    for size, y, z in FINGER_BOXES:
        collision = ElementTree.SubElement(link, "collision")
        ElementTree.SubElement(collision, "origin", rpy="0 0 0", xyz=f"0 {outwards * y} {z}")
        geometry = ElementTree.SubElement(collision, "geometry")
        ElementTree.SubElement(geometry, "box", size=size)
